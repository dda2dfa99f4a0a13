"""A member who attacks the platform and his neighbours with his ordinary rights, and what that does to them.

calls.py: one request. cluster_attacks.py and portal_attacks.py: endless requests of each kind, drawn from a seed, with
the objects of objects.py; attacks.py lists the kinds. sender.py and __main__.py send them from a process of their own
(process.py starts it), tally.py counts the answers. neighbour.py works in another team, probes.py looks at etcd and the
watcher, activities.py takes their times, measures.py compares them. aftermath.py and logs.py tell what is left. web.py
serves the portal with the limits of production.
"""
