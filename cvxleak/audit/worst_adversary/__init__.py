"""The search for the worst adversary: one loop over the rules of the proof kernel."""
