"""Exact and outward-rounded arithmetic, and the strict reading of what files hold."""
