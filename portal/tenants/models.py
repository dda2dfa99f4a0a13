"""Departments, teams, projects, people, memberships, invitations, tokens. Written by `portal.tenants.services` only."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.functional import Promise

from portal.audit.entries import audit
from portal.clusters.models import Cluster
from portal.core.models import AppendOnly
from portal.tenants.object_limits import CONFIG_KIB, CONFIG_KIB_MAX

SLUG = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
is_slug = RegexValidator(SLUG, "Use lower-case letters, digits and hyphens, starting with a letter.")
is_free_namespace = RegexValidator(
    r"^(kube-|kueue-|gpu-portal|default$)",
    "This namespace is Kubernetes', Kueue's or the portal's own. Use another.",
    inverse_match=True,
)


MAX_DEPTH = 4
"""Departments below one another, at most."""


class Role(models.TextChoices):
    """Roles in a team, weakest first."""

    VIEWER = "viewer"
    MEMBER = "member"
    LEAD = "lead"


class PlatformRole(models.TextChoices):
    NONE = ""
    OPERATOR = "operator"
    AUDITOR = "auditor"

    @property
    def label(self) -> str | Promise:
        return self.value or "none"


class PodSecurity(models.TextChoices):
    """Pod Security Standards level that the project's namespace enforces."""

    RESTRICTED = "restricted"
    BASELINE = "baseline"


class Exposure(models.TextChoices):
    """From where the project's Services may be reached."""

    CLUSTER = "cluster"
    NODE_PORT = "node-port"
    LOAD_BALANCER = "load-balancer"


class Egress(models.TextChoices):
    """Where the project's pods may connect to, besides their own namespace and DNS."""

    NONE = "none"
    CLUSTER = "cluster"
    INTERNET = "internet"


class Guard(models.TextChoices):
    """Mode of the admission policies in the project's namespace: warn or refuse."""

    AUDIT = "audit"
    ENFORCE = "enforce"


class Scope(models.TextChoices):
    """What a token may be used for; never more than its owner may do."""

    READ = "read"
    REQUEST = "request"
    APPROVE = "approve"
    ADMIN = "admin"


class UserManager(BaseUserManager["User"]):
    def create_superuser(self, username: str, email: str = "", password: str | None = None, **fields: Any) -> "User":
        """Create an operator: what `manage.py createsuperuser` calls."""
        email = self.normalize_email(email)
        user = self.model(username=username, email=email, platform_role=PlatformRole.OPERATOR, **fields)
        user.set_password(password)
        user.save(using=self._db)
        audit("system", "user.create", username, after={"platform_role": str(PlatformRole.OPERATOR)})
        return user


class User(AbstractUser):
    """A person. Permissions follow from `platform_role` and memberships (`portal.tenants.access`).

    Django's own flags are derived from the role; its groups and permissions are not used.
    """

    platform_role = models.CharField(max_length=10, choices=PlatformRole, blank=True, default="")
    columns = models.JSONField(
        default=dict, db_default={}, blank=True, editable=False, help_text="chosen columns, by list"
    )
    groups = None  # type: ignore[assignment]  # how Django takes an inherited field away
    user_permissions = None  # type: ignore[assignment]
    objects: ClassVar[UserManager] = UserManager()  # type: ignore[assignment]

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(platform_role__in=PlatformRole.values), name="user_platform_role_known"),
        ]

    @property
    def is_staff(self) -> bool:  # type: ignore[override]
        """Return whether the person may open Django's admin."""
        return self.platform_role == PlatformRole.OPERATOR

    @property
    def is_superuser(self) -> bool:  # type: ignore[override]
        """Return whether the person may do everything in Django's admin."""
        return self.platform_role == PlatformRole.OPERATOR

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return self.is_active and self.is_superuser

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_active and self.is_superuser


class Department(models.Model):
    """A group of teams that lend to each other: Kueue's Cohort. It may be part of another, its `parent`."""

    slug = models.CharField(max_length=40, unique=True, validators=[is_slug])
    name = models.CharField(max_length=100)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug


class Team(models.Model):
    """Holds quota and budget: one Kueue ClusterQueue."""

    slug = models.CharField(max_length=40, unique=True, validators=[is_slug])
    name = models.CharField(max_length=100)
    department = models.ForeignKey(Department, on_delete=models.PROTECT, related_name="teams")

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug


class HierarchyChange(AppendOnly):
    """The department of a team, or the `parent` of a department (null: none), from `at` on; append-only.

    Written with each change (`portal.tenants.structure.record_parent`). The time before the first row of a team or
    department has that one. The rows of a team that never had a project or a quota are deleted with it.
    """

    may_be_withdrawn = True

    at = models.DateTimeField()
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    department = models.ForeignKey(Department, null=True, on_delete=models.PROTECT, related_name="+")
    parent = models.ForeignKey(Department, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("-at", "-id")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(team__isnull=False, department=None, parent__isnull=False)
                | Q(team=None, department__isnull=False),
                name="hierarchy_change_of_one",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team or self.department} in {self.parent} from {self.at:%F %T}"


class Project(models.Model):
    """A namespace of one cluster in which a team works, with its LocalQueue and policies."""

    slug = models.CharField(max_length=40, unique=True, validators=[is_slug])
    name = models.CharField(max_length=100)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="projects")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="projects", db_index=False)
    namespace = models.CharField(max_length=63, validators=[is_slug, is_free_namespace])
    adopted = models.BooleanField(
        default=False, help_text="the namespace was there before, and outlives the project; else it is the portal's"
    )
    guard = models.CharField(max_length=10, choices=Guard, default=Guard.ENFORCE)
    pod_security = models.CharField(max_length=10, choices=PodSecurity, default=PodSecurity.RESTRICTED)
    egress = models.CharField(max_length=10, choices=Egress, default=Egress.NONE)
    exposure = models.CharField(max_length=13, choices=Exposure, default=Exposure.CLUSTER)
    admin_access = models.BooleanField(
        default=False, help_text="operators' claims here may look at devices others hold"
    )
    object_limits = models.JSONField(
        default=dict, blank=True, help_text="Kind → number of objects, where it differs from the default."
    )
    config_size_kib = models.PositiveSmallIntegerField(
        default=CONFIG_KIB, help_text="How large a ConfigMap or a Secret may be, in KiB."
    )
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("slug",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("cluster", "namespace"), name="project_namespace_unique_in_cluster"),
            models.CheckConstraint(condition=Q(pod_security__in=PodSecurity.values), name="project_pod_security_known"),
            models.CheckConstraint(condition=Q(egress__in=Egress.values), name="project_egress_known"),
            models.CheckConstraint(condition=Q(exposure__in=Exposure.values), name="project_exposure_known"),
            models.CheckConstraint(condition=Q(guard__in=Guard.values), name="project_guard_known"),
            models.CheckConstraint(
                condition=Q(config_size_kib__range=(1, CONFIG_KIB_MAX)), name="project_config_size_possible"
            ),
            models.CheckConstraint(
                condition=Q(adopted=True) | Q(guard=Guard.ENFORCE), name="project_own_namespace_is_enforced"
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """One person's role in one team."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)

    class Meta:
        ordering = ("team__slug", "user__username")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("user", "team"), name="one_role_per_person_and_team"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class Invitation(models.Model):
    """A role in a team, offered to whoever has the username or e-mail address. Deleted once it is answered.

    Written by `portal.tenants.invitations` only.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    invitee = models.CharField(max_length=254, help_text="Username or e-mail address, as it was typed.")
    role = models.CharField(max_length=10, choices=Role)
    invited_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ("team__slug", "invitee")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("team", "invitee"), name="one_invitation_per_invitee_and_team"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="invitation_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.invitee} is invited as {self.role} of {self.team}"


class ApiToken(models.Model):
    """A bearer token: a public prefix to find it by, and the SHA-256 digest of the whole secret."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, help_text="The token it was created with, if any."
    )

    class Meta:
        ordering = ("-created_at", "-id")
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=models.F("created_at")), name="token_expires_later"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.name})"
