"""What several lectures on benign overfitting use: token data, their reduced training, rare errors."""
