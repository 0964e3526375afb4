"""Adam and gradient descent on sparse noise."""
