"""A simulation for a person who sees only one project."""

from gatehouse.permissions.questions.simulate import Effect, Forecast, limit_to_project

RULE = "private_data.projectAccess.{}.private_data.project.can_view_project"


def test_inside_a_project_nothing_of_the_root_or_of_another_project_is_told() -> None:
    effect = Effect(
        user_id="1001",
        gains=("private_data.can_administer", RULE.format("mind_games"), RULE.format("mind_games_2")),
        loses=(RULE.format("mind_games.groups.5f"), RULE.format("other")),
        gains_roles=("admin", "mind_games/project_owner", "mind_games.groups.5f/group_manager", "other/mind_games"),
        loses_roles=("mind_games", "mind_games_2/project_owner"),
    )
    elsewhere = Effect(user_id="1002", gains=(RULE.format("other"),), loses=(), gains_roles=(), loses_roles=())
    assert limit_to_project(
        Forecast(effects=[effect, elsewhere], examined=2, after="1002"), "mind_games"
    ) == Forecast(
        effects=[
            Effect(
                user_id="1001",
                gains=(RULE.format("mind_games"),),
                loses=(RULE.format("mind_games.groups.5f"),),
                gains_roles=("mind_games/project_owner", "mind_games.groups.5f/group_manager"),
                loses_roles=(),
            )
        ],
        examined=2,
        after="1002",
    )
