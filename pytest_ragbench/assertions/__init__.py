"""What tests call: helpers for one sample, for a set, and for what needs no metric."""
