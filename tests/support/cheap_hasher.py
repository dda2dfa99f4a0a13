"""The portal's password hasher with 64 KiB instead of 46 MiB, since most tests that sign in are not about the hash."""

from portal.tenants.password_hashing import BoundedArgon2PasswordHasher


class CheapHasher(BoundedArgon2PasswordHasher):
    memory_cost = 64
