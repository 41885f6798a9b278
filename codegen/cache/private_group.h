/* Whether a group is one user's alone, as Ubuntu and others make one for each user: what it may
 * write, nobody else can. */
#ifndef TL_PRIVATE_GROUP_H
#define TL_PRIVATE_GROUP_H
#include <stdbool.h>
#include <sys/types.h>

/* By the texts of /etc/passwd and /etc/group: the group is the user's first one and no other
 * user's, and lists no other as a member. Who is in neither text has no group for himself, nor has
 * root. */
bool tl_private_group_in(const char *users, const char *groups, uid_t user, gid_t group);
/* The same by the files of this machine; users of other sources (LDAP) have none. */
bool tl_private_group(uid_t user, gid_t group);
#endif
