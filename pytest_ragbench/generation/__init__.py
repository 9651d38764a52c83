"""Question sets from documents, and variants of questions."""
