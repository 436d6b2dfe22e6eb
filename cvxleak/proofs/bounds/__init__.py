"""What several kinds of certificates are proved by."""
