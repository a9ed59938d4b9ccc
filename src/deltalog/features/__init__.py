"""Table features: what they are, when they are on, and what a protocol change makes of them.

Core: no I/O. Files import only those before them: schema_traits, registry, protocol_change,
row_ids, in_commit_timestamps, clustering, support.

Protocol: Table Features
"""
