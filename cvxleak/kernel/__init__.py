"""The proof kernel."""
