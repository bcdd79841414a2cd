"""Audit OpenDP's Laplace mechanism, with its noise and with a third of it: python examples/audit_opendp.py"""

import opendp.prelude as dp

import lidp

dp.enable_features("contrib")
space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
for scale in (1.0, 1 / 3):
    measurement = dp.m.make_laplace(*space, scale=scale)

    def noisy_count(count, rng, measurement=measurement):  # OpenDP has its own random numbers
        return measurement(count)

    print(lidp.audit_pair(noisy_count, 0.0, 1.0, claim=lidp.Claim(1.0), runs=5_000))
