"""A member who attacks the platform and other teams with ordinary permissions, and the effect on them.

calls.py is one request. cluster_attacks.py and portal_attacks.py generate endless requests of each kind from a seed,
with the objects of objects.py; attacks.py lists the kinds. sender.py and __main__.py send them from a process of their
own (process.py starts it), tally.py counts the answers. neighbour.py works in another team, probes.py reads etcd and
the watcher, activities.py measures their times, measures.py compares them. aftermath.py and logs.py find what is left.
web.py serves the portal with production limits.
"""
