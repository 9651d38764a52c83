"""Does the suite catch anything? Good answers made bad (and rephrased ones that stay good) by rule: docs/mutate.md."""
