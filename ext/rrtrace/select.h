/* select.h - which methods are to be traced: --only, --except, --only-path.
 * For:     rrtrace.c (sets it), methods.c (asks once a method), target.c (asks which code can matter at all).
 * Idea:    a method is wanted when it matches one of the only patterns (if there are any), lies below one of the folders
 *          (if there are any) and matches no except pattern. What a pattern means is in select_set's comment.
 * Memory:  copies of the patterns and folders, kept until the next select_set.
 * Threads: set with the main Ractor's GVL held while nothing is traced; only read from then on.
 */
#ifndef RRTRACE_EXT_SELECT_H
#define RRTRACE_EXT_SELECT_H

#include "vm.h"

#include <stdbool.h>
#include <stddef.h>

#define SELECT_WHY_BYTES 512

typedef struct select_words {
    const char *const *words;
    size_t count;
} select_words;

/* What is wanted from now on; nothing given: everything. 0, or -1 with one line in why, and then everything is wanted.
 *
 *   Foo#bar  Foo.bar     an instance method, a singleton method (Foo::bar as well; a :: in front says nothing)
 *   Foo#*  Foo.*  *#save  Foo::*    * stands for any characters
 *   #save  .create       in any class
 *   Foo  Foo::Bar        all methods of a class or module, and of what lies inside it
 *   save  []  ==         a method's name, in any class
 *   /regex/  /regex/i    wire/expression.h, anywhere in the name, as in `rrtrace report --method`
 *
 * folders: absolute and real, without a slash at the end. */
int select_set(select_words only, select_words except, select_words folders, char why[SELECT_WHY_BYTES]);

/* Does this word say anything? 0, or -1 with the reason in why. */
int select_check(const char *word, char why[SELECT_WHY_BYTES]);

bool select_is_on(void);      /* is anything left out? */
bool select_has_patterns(void); /* do names matter? */
bool select_names_what(void); /* by only or only_path: most is left out, and so are all methods written in C */

/* Is a method wanted? name: the qualified one, which ends in a NUL behind name_bytes. iseq: its code; 0: it is written in
 * C, or not known. path: as CRuby gives it; "" when not known. */
bool select_wants(const char *name, size_t name_bytes, bool is_c, VALUE iseq, const char *path);

/* Could code be that of a wanted method, when nothing is known but the name it was defined under (NULL: none, as of a
 * block)? */
bool select_may_want(const char *label, VALUE iseq);

#endif
