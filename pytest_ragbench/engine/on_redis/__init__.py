"""Everything that processes share, in a Redis server: for runs on several hosts with no folder in common."""
