"""Run a policy of the zoo for one episode.

Run it: python examples/03_run_a_policy.py
"""

import iap

policy = iap.load_policy("zoo:seek")
env = iap.make_env(policy.env)
observation, _ = env.reset(seed=0)
state, total, ended = policy.reset(), 0.0, False
while not ended:
    action, state, attention = policy.act(state, observation)
    observation, reward, terminated, truncated, _ = env.step(iap.to_action(env.action_space, action))
    total, ended = total + float(reward), terminated or truncated
print(f"return {total:.2f} with {len(policy.theta)} parameters")
