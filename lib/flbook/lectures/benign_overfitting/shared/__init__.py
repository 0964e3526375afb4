"""Token data and their reduced training, which several lectures on benign overfitting use."""
