"""The judge, judged: its verdicts beside people's (docs/calibration.md)."""
