"""From what a judge sent to a typed reply: strict, and never a guess."""
