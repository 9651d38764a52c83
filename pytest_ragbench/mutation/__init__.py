"""Does the suite catch anything? Answers made bad (and rephrased ones that stay good) by rule: docs/calibration.md."""
