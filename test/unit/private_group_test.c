/* Which groups are one user's alone, by the texts of /etc/passwd and /etc/group. */
#include "codegen/cache/private_group.h"
#include "test/unit/unit.h"

static const char USERS[] = "root:x:0:0:root:/r:/bin/bash\n"
                            "ann:x:1000:1000:Ann,,,:/u/ann:/bin/bash\n"
                            "\n"
                            "bob:x:1001:1001::/u/bob:/bin/sh\n"
                            "cat:x:1002:100::/u/cat:/bin/sh\n"
                            "dog:x:1003:100::/u/dog:/bin/sh\n"
                            "eve:x:1004:1004::/u/eve:/bin/sh\n"
                            "twin:x:1004:1005::/u/twin:/bin/sh\n"
                            "fay:x:1006:1006\n"
                            "gus:x:10077:1007::/u/gus:/bin/sh";
static const char GROUPS[] = "root:x:0:\n"
                             "users:x:100:\n"
                             "ann:x:1000:\n"
                             "bob:x:1001:bob\n"
                             "eve:x:1004:eve,ann\n"
                             "twin:x:1005:\n"
                             "fay:x:1006\n"
                             "again:x:1006:ann\n"
                             "gus:x:1007:";

static const struct {
    unsigned user, group;
    bool alone;
    const char *why;
} rows[] = {
    {1000, 1000, true, "the group lists nobody"},
    {1001, 1001, true, "the group lists its user"},
    {10077, 1007, true, "the last line has no end"},
    {0, 0, false, "root"},
    {1000, 1001, false, "another's group"},
    {1001, 1000, false, "another's group"},
    {1002, 100, false, "two have it as the first one"},
    {1004, 1004, false, "it lists another, too"},
    {1006, 1006, false, "two names, of which one lists another"},
    {1007, 1007, false, "a number that begins like the user's"},
    {1000, 100, false, "it is not the user's first one"},
    {1009, 1009, false, "neither is known"},
    {1000, 10000, false, "a number that begins like the group's"},
};

static void groups_of_one_user(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!CHECK(tl_private_group_in(USERS, GROUPS, rows[i].user, rows[i].group) ==
                   rows[i].alone))
            fprintf(stderr, "    %u, %u: %s\n", rows[i].user, rows[i].group, rows[i].why);
    CHECK(!tl_private_group_in("", "", 1000, 1000));
    CHECK(!tl_private_group_in(USERS, "", 1000, 1000));
    CHECK(!tl_private_group_in("", GROUPS, 1000, 1000));
    CHECK(!tl_private_group_in("ann:x:1000", "ann", 1000, 1000));
    CHECK(!tl_private_group_in(":::\n::\n\n:", ":\n\n", 1000, 1000));
    CHECK(!tl_private_group_in("ann:x:-1:-1\n", "ann:x:-1:\n", (uid_t)-1, (gid_t)-1));
    CHECK(!tl_private_group_in("ann:x:1000:1000\n", "x:x:10 00:\nann:x: 1000:\n", 1000, 1000));
}

int main(void)
{
    groups_of_one_user();
    return unit_result();
}
