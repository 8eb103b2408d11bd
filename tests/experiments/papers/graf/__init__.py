"""Tests of Graf et al.'s experiments."""
