/* What the files of expressions share; the rest of sema calls what sema.h has of them. */
#ifndef TL_EXPR_H
#define TL_EXPR_H
#include "frontend/sema.h"

/* ---- expr_name.c ---- */
/* member: the name after its dot, for messages, or NULL. */
TlVal tl_eval_name(TlSema *s, const TlExpr *e, TlName member);
TlVal tl_eval_member(TlSema *s, const TlVal *v, TlName name, TlLoc loc);

/* ---- expr_operator.c ---- */
TlVal tl_eval_binary(TlSema *s, const TlExpr *e);
TlVal tl_eval_unary(TlSema *s, int op, TlVal a, TlLoc loc);
/* The common type of d and an unknown type, if it is certain: the unknown one may be wider. */
TlDtype tl_beside_unknown(TlDtype d);

/* ---- expr_cast.c ---- */
TlVal tl_eval_cast(TlSema *s, const TlExpr *e);

/* ---- expr_choice.c ---- */
TlVal tl_eval_choice(TlSema *s, const TlExpr *e);
/* && and || of scalars evaluate the right side only when it is needed; of tiles both, element by
 * element. */
TlVal tl_eval_logical(TlSema *s, int op, TlVal a, const TlExpr *right, TlLoc loc);
#endif
