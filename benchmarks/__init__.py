"""Measurements as ratios in one run; ``make bench`` runs them all and writes docs/benchmarks.md."""
