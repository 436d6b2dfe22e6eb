"""Mechanism design: the channel of least leakage, or of least distortion, that budgets allow."""
