"""Certificates and their independent checker (no solver, no modelling language)."""

from cvxleak.certificates.bundle import read_certificates, save_certificates
from cvxleak.certificates.checker import Verification, verify
from cvxleak.certificates.format import Certificate

__all__ = ["Certificate", "Verification", "read_certificates", "save_certificates", "verify"]
