/* Private groups, from the files alone: getgrgid loads what nsswitch.conf names, which a library
 * must not do in its host, and takes no list of who else has the group as the first one. */
#include "codegen/cache/private_group.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME, PASSWORD, ID, FIRST_GROUP, MEMBERS = FIRST_GROUP, MOST = 1 << 20 };

typedef struct Field {
    const char *text;
    size_t length;
} Field;

/* Field i of the line, which ends at a line's end; "" behind the last. */
static Field field(const char *line, int i)
{
    for (; i > 0; i--) {
        line += strcspn(line, ":\n");
        line += *line == ':';
    }
    return (Field){line, strcspn(line, ":\n")};
}

static bool is_number(Field f, unsigned long n)
{
    char *end;
    return f.length && f.text[0] >= '0' && f.text[0] <= '9' && strtoul(f.text, &end, 10) == n &&
           end == f.text + f.length;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* Nobody, or the user alone? */
static bool lists_only(Field members, Field user)
{
    return !members.length || (members.length == user.length &&
                               memcmp(members.text, user.text, user.length) == 0);
}

bool tl_private_group_in(const char *users, const char *groups, uid_t user, gid_t group)
{
    Field name = {0};
    bool found = false;
    if (user == 0) /* its umask lets no group write */
        return false;
    for (const char *line = users; *line; line = next_line(line)) {
        if (!is_number(field(line, FIRST_GROUP), group))
            continue;
        if (name.text || !is_number(field(line, ID), user))
            return false;
        name = field(line, NAME);
    }
    for (const char *line = groups; *line; line = next_line(line)) {
        if (!is_number(field(line, ID), group))
            continue;
        if (!name.text || !lists_only(field(line, MEMBERS), name))
            return false;
        found = true;
    }
    return found && name.length;
}

/* malloc'd; NULL: it cannot be read, or is longer than such files of one machine are. */
static char *text_of(const char *path)
{
    int f = open(path, O_RDONLY | O_CLOEXEC);
    char *text = f < 0 ? NULL : malloc(MOST + 1);
    size_t n = 0;
    ssize_t got = 1;
    while (text && n <= MOST - 1 && (got = read(f, text + n, MOST - n)) > 0)
        n += (size_t)got;
    if (f >= 0)
        close(f);
    if (text && got == 0 && !memchr(text, 0, n))
        return text[n] = 0, text;
    free(text);
    return NULL;
}

bool tl_private_group(uid_t user, gid_t group)
{
    char *users = text_of("/etc/passwd"), *groups = text_of("/etc/group");
    bool private = users && groups && tl_private_group_in(users, groups, user, group);
    free(users);
    free(groups);
    return private;
}
