"""The papers: figures and tables computed again, errata."""
