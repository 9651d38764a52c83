"""Plain data that every room uses: samples, scores, thresholds, errors. No I/O, and nothing of pytest."""
