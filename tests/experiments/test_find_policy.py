import pytest

from iap.experiments.evaluate import find_policy, job_of


def test_a_policy_may_act_in_its_environment_with_other_options():
    policy, path = find_policy("zoo:obstacle-course", env_options={"walls": 2})
    assert path.endswith("obstacle-course.policy")
    assert dict(job_of(policy).env.kwargs) == {"residuals": False, "walls": 2}


def test_an_option_that_its_environment_does_not_have_is_named():
    policy, _ = find_policy("zoo:obstacle-course", env_options={"wals": 2})
    with pytest.raises(TypeError, match="has no option wals"):
        job_of(policy).env.make()
