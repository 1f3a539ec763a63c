"""The contract of methods and oracles, as tests that any package can inherit.

A method's tests are three lines::

    from ahead_ldp.testing import MechanismContract

    class TestHalf(MechanismContract):
        kind = Half

pytest then runs every check of the contract over ``Half``. Our own methods and oracles pass the same checks.
"""

from ahead_ldp.testing.mechanisms import SCHEMAS, MechanismContract
from ahead_ldp.testing.oracles import OracleContract

__all__ = ["SCHEMAS", "MechanismContract", "OracleContract"]
