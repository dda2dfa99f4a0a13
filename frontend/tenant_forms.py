"""Forms of departments, teams, projects and members. The services validate their content."""

from collections.abc import Collection
from typing import Any

from django import forms
from django.db.models import QuerySet

from allocations.projects import archive
from frontend.base_form import Form
from portal.core.errors import Invalid, Problem
from portal.tenants.models import Department, Egress, Exposure, PodSecurity, Project, Role, Team
from portal.tenants.project_options import SETTINGS, ProjectOptions

ROLES = [
    (Role.VIEWER.value, "Viewer: can view"),
    (Role.MEMBER.value, "Member: can also request GPUs"),
    (Role.LEAD.value, "Lead: manages members and all requests"),
]
PLAIN = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


def _slug() -> forms.CharField:
    return forms.CharField(
        max_length=40,
        help_text="Lower-case letters, digits and hyphens. Cannot be changed later.",
        widget=forms.TextInput(attrs=PLAIN),
    )


def _name(**options: Any) -> forms.CharField:
    return forms.CharField(max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"}), **options)


def _within(**options: Any) -> forms.ModelChoiceField:
    return forms.ModelChoiceField(Department.objects.none(), to_field_name="slug", **options)


def _team(**options: Any) -> forms.ModelChoiceField:
    return forms.ModelChoiceField(Team.objects.none(), to_field_name="slug", **options)


class MemberForm(Form):
    username = forms.CharField(
        max_length=150, help_text="The name that the person signs in with.", widget=forms.TextInput(attrs=PLAIN)
    )
    role = forms.ChoiceField(choices=ROLES, initial=Role.MEMBER.value)


class InvitationForm(MemberForm):
    """The form in which a lead invites a person, or changes the role of a member."""

    username = forms.CharField(
        max_length=254,
        label="Username or e-mail address",
        help_text="The person can accept after signing in. The portal does not check whether the account exists.",
        widget=forms.TextInput(attrs=PLAIN),
    )

    def add_problem(self, problem: Problem) -> None:
        """Add the errors of a refusal at the form's corresponding fields."""
        for message in problem.errors.pop("invitee", []):
            self.add_error("username", message)
        if problem.errors or not self.errors:
            super().add_problem(problem)


class DepartmentForm(Form):
    name = _name(help_text="Display name. Can be changed later.")
    parent = _within(
        required=False,
        label="Parent department",
        empty_label="None",
        help_text="Teams below the same top department can lend to each other.",
    )

    def __init__(self, departments: QuerySet[Department], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["parent"].queryset = departments  # type: ignore[attr-defined]


class NewDepartmentForm(DepartmentForm):
    slug = _slug()
    field_order = ("slug", "name", "parent")


class TeamForm(Form):
    name = _name(help_text="Display name. Can be changed later.")
    department = _within(
        empty_label=None,
        help_text="The team lends to teams of this department. Past costs stay with the old department.",
    )

    def __init__(self, departments: QuerySet[Department], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["department"].queryset = departments  # type: ignore[attr-defined]


class NewTeamForm(TeamForm):
    slug = _slug()
    field_order = ("slug", "name", "department")


class ProjectForm(Form):
    """The settings of a project: those in ``editable``, or all."""

    name = _name(help_text="Display name. Can be changed later.")
    pod_security = forms.ChoiceField(
        choices=[(level.value, level.value) for level in PodSecurity],
        initial=PodSecurity.RESTRICTED.value,
        help_text="Pod Security level of the namespace in Kubernetes.",
    )
    egress = forms.ChoiceField(
        choices=[(profile.value, profile.value) for profile in Egress],
        initial=Egress.NONE.value,
        help_text="Allowed network egress of pods, in addition to their namespace and DNS.",
    )
    exposure = forms.ChoiceField(
        choices=[
            (Exposure.CLUSTER.value, "Inside the cluster only"),
            (Exposure.NODE_PORT.value, "A port on every node"),
            (Exposure.LOAD_BALANCER.value, "A load balancer, or a port on every node"),
        ],
        initial=Exposure.CLUSTER.value,
        label="Services",
        help_text="Where the project's Services can be reached from.",
    )
    admin_access = forms.BooleanField(
        required=False, label="Allow admin access: claims of operators can use devices held by others"
    )

    def __init__(self, *args: Any, editable: Collection[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if editable is not None:
            self.fields = {name: field for name, field in self.fields.items() if name in editable}


class NewProjectForm(ProjectForm):
    slug = _slug()
    team = _team(empty_label=None)
    namespace = forms.CharField(
        required=False, max_length=63, help_text="Empty: the slug.", widget=forms.TextInput(attrs=PLAIN)
    )
    adopt = forms.BooleanField(
        required=False,
        label="Adopt an existing namespace",
        help_text="First a cluster admin must allow it: "
        "<code>kubectl label namespace NAME gpu-portal.io/adopt=true</code>. "
        "The admission guard only warns until you change it.",
    )
    field_order = ("slug", "name", "team", "namespace", "adopt")

    def __init__(self, teams: QuerySet[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams  # type: ignore[attr-defined]

    def options(self) -> ProjectOptions:
        return ProjectOptions(**{name: self.cleaned_data[name] for name in ("namespace", "adopt", *SETTINGS)})


class ArchiveForm(Form):
    confirm = forms.CharField(required=False, widget=forms.TextInput(attrs={**PLAIN, "required": True}))

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].label = f"Type {project.slug} to archive it"
        self.project = project

    def clean(self) -> None:
        try:
            archive.require_confirmation(self.project, self.cleaned_data.get("confirm", ""))
        except Invalid as problem:
            self.add_problem(problem)


class MoveForm(Form):
    team = _team(empty_label=None, label="To team")

    def __init__(self, project: Project, teams: QuerySet[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].queryset = teams.exclude(pk=project.team_id)  # type: ignore[attr-defined]
