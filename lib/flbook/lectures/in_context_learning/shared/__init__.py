"""Prompts, networks, dynamics and risks that several lectures on in-context learning use."""
