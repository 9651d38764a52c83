"""Runs as traces and experiments of tracing backends, and traces as questions."""
