"""Exact and outward-rounded arithmetic, and the strict reading of files."""
