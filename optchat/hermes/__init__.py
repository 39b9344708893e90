"""Everything that knows Hermes.

The provider and its hooks, tools, setup, and the way to its models. Nothing else imports Hermes.
"""
