"""Training: problems that know their gradient, rules that ask for it, and the loops that take the steps."""
