/* The tokens of SQL, as PostgreSQL reads it ("SQL Syntax", Lexical Structure), with standard_conforming_strings on.
 *
 * Comments and blanks are no tokens. A string, an identifier in quotes or a comment that does not end goes up to the
 * end of the text. */
#pragma once

#include "harness/recogniser/text/short_text.h"

enum sql_token_kind {
    SQL_END,       /* of the text */
    SQL_WORD,      /* a keyword, or an identifier without quotes */
    SQL_QUOTED,    /* an identifier in quotes, with them */
    SQL_STRING,    /* with its quotes and what is in front of them: E'..', $tag$..$tag$, ... */
    SQL_NUMBER,    /* without a sign */
    SQL_PARAMETER, /* $1 */
    SQL_MARK,      /* one of ( ) [ ] , ; . */
    SQL_OPERATOR,  /* one or several others; also :: and := */
};

struct sql_token {
    enum sql_token_kind kind;
    struct span text;
    int match; /* of a bracket: the index of its partner; -1: it has no such one */
};

/* Finds the token at or behind *at, and moves *at behind it. */
struct sql_token sql_token_next(struct span text, size_t *at);

/* All tokens of a text, at most so many; the last one is SQL_END. */
struct sql_tokens {
    struct sql_token *list; /* owned */
    int count;              /* without SQL_END */
    bool cut;               /* there were more */
};
enum { SQL_TOKENS_MOST = 20000 };
void sql_tokens_read(struct sql_tokens *tokens, struct span text);
void sql_tokens_free(struct sql_tokens *tokens);

/* Without regard to case; only of SQL_WORD. */
bool sql_token_is_word(const struct sql_token *token, const char *word);
bool sql_token_is(const struct sql_token *token, const char *mark_or_operator);
/* Of a parameter: its number, from 1; 0: it has none that could be. */
int sql_token_parameter(const struct sql_token *token);

/* The name that an identifier means: in lower case, or what is between its quotes. */
void sql_name_add(struct short_text *text, const struct sql_token *token);
/* What a string says, without its quotes. */
void sql_string_add(struct short_text *text, struct span string);
