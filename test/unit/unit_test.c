/* The test framework itself: a failed check must be seen, and so must a test that checks
 * nothing. */
#include "test/unit/unit.h"

int main(void)
{
    FILE *quiet = freopen("/dev/null", "w", stderr);
    bool none_fails = unit_result() == 1;
    bool false_fails = !CHECK(1 > 2) && unit_failures == 1 && unit_result() == 1;
    bool wrong_int_fails = !CHECK_INT(1, 2) && unit_failures == 2;
    bool wrong_str_fails = !CHECK_STR("a", "b") && !CHECK_STR("a", NULL) && unit_failures == 4;
    unit_failures = 0;
    CHECK(quiet != NULL);
    CHECK(none_fails && false_fails && wrong_int_fails && wrong_str_fails);
    CHECK_INT(-1, -1);
    CHECK_STR("a", "a");
    return unit_result();
}
