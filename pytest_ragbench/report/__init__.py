"""What people and machines read after a run."""
