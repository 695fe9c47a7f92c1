"""Dashboards for Graphite and Grafana, and StatsD, carbon and graphite-web to look at them with."""
