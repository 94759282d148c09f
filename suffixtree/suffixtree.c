/* SPDX-License-Identifier: MIT
 *
 * Problem: a program is a string of some millions of tokens, most of which occur once.
 * We want every sequence that occurs at least twice, with all its places, in linear
 * time and in less memory than the rest of the program takes.
 *
 * Idea: the inner nodes of the suffix tree are exactly the right-maximal repeats, and
 * the leaves below a node are its occurrences. Ukkonen's algorithm reads the string
 * from left to right and keeps the place where the longest repeated suffix ends (struct
 * builder); suffix links lead from there to the next shorter one.
 *
 * What makes it small:
 *   - A node stores the length of its string (`depth`) and one place where that string
 *     stands (`head`). The label of the edge parent -> child then is
 *     text[head(child) + depth(parent) .. head(child) + depth(child)), so an edge needs
 *     no record of its own. The leaf of suffix j has head j and reaches to the end of
 *     the text: it needs no record at all.
 *   - The alphabet is as large as the text, so arrays of children are out of the
 *     question, and lists of them make the root quadratic. Most inner nodes have two
 *     children, though: two edges are in the node itself, where reading it has brought
 *     them into the cache. All others are in one hash table, (node, first symbol) ->
 *     child.
 *   - There are at most n inner nodes and n + 1 leaves, and all inner nodes but the
 *     root keep two of these 2n + 1 children themselves. So the table never holds more
 *     than n + 1 edges, and is made once with 1.5 (n + 1) slots.
 * Per integer that is at most 28 bytes of nodes, 12 of slots and 16 of families before
 * the slots are freed, then 44 with at most 16 of the result: 60 at the worst.
 *
 * Order: the layout of the hash table depends on the input alone, but on nothing that
 * anyone would like to explain. So the table only tells every node its parent; then
 * children are listed by number: inner nodes in the order in which their repeat was
 * first seen to repeat, then leaves by position.
 *
 * Why not a suffix array with an LCP array? Smaller still and as fast, but the
 * intervals have to be recovered with a stack, and the best construction (SA-IS) is
 * longer and harder to read than all of this. Why not a generalised tree over many
 * strings? Separators that occur once have the same effect.
 *
 * Reference: E. Ukkonen, "On-line construction of suffix trees", Algorithmica 14
 * (1995). The layout follows S. Kurtz, "Reducing the space requirement of suffix trees"
 * (1999).
 */
#include "mo/suffixtree.h"

#include <assert.h>

/* A child: an inner node by its index, or a leaf by its suffix's start with the top bit
 * set. 0 is "none": the root is nobody's child. */
enum { ROOT = 0 };
#define NO_CHILD 0u
#define LEAF     0x80000000u

#define END_SYMBOL UINT32_MAX

struct edge {
    uint32_t symbol; /* the first of its label */
    uint32_t child;  /* NO_CHILD: no such edge */
};

enum { OWN_EDGES = 2 };

struct node {
    uint32_t head;                /* one start of its string in the text */
    uint32_t depth;               /* integers in its string */
    uint32_t link;                /* the node of its string without the first integer */
    struct edge edges[OWN_EDGES]; /* the root's are empty */
};

/* The symbol of such an edge is looked up in the text. */
struct slot {
    uint32_t node;
    uint32_t child; /* NO_CHILD: free */
};

struct tree {
    const uint32_t *values;
    uint32_t count; /* without the end mark, which stands at values[count] in spirit */
    struct slot *slots;
    uint32_t slot_count;
    struct node *nodes;
    uint32_t node_count;
};

/* The active point: the longest suffix of what has been read that occurs earlier, as
 * `length` integers of the text from `edge` on, below `node`. */
struct builder {
    uint32_t node, edge, length;
    uint32_t suffix;   /* start of the first suffix that has no leaf yet */
    uint32_t unlinked; /* node made last, which waits for its link, or ROOT */
};

static uint32_t symbol_at(const struct tree *tree, uint32_t position)
{
    return position < tree->count ? tree->values[position] : END_SYMBOL;
}

static uint32_t head_of(const struct tree *tree, uint32_t child)
{
    return child & LEAF ? child & ~LEAF : tree->nodes[child].head;
}

/* The depth of a leaf is what it will be at the end: it only has to be large enough. */
static uint32_t depth_of(const struct tree *tree, uint32_t child)
{
    return child & LEAF ? tree->count + 1 - (child & ~LEAF) : tree->nodes[child].depth;
}

static uint32_t first_slot(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    uint64_t mixed = ((uint64_t)node << 32 | symbol) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(((mixed >> 32) * tree->slot_count) >> 32);
}

/* A free slot is bound to the node at once: whoever misses an edge puts it there. */
static uint32_t *find_slot(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    uint32_t depth = tree->nodes[node].depth;
    uint32_t at = first_slot(tree, node, symbol);
    for (;;) {
        struct slot *slot = &tree->slots[at];
        if (slot->child == NO_CHILD)
            slot->node = node;
        if (slot->child == NO_CHILD ||
            (slot->node == node &&
             symbol_at(tree, head_of(tree, slot->child) + depth) == symbol))
            return &slot->child;
        if (++at == tree->slot_count)
            at = 0;
    }
}

/* Where the child is kept to which the edge from `node` with `symbol` leads: NO_CHILD
 * when there is no such edge, and then it may be put there. */
static uint32_t *find_child(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    if (node != ROOT)
        for (uint32_t i = 0; i < OWN_EDGES; i++)
            if (tree->nodes[node].edges[i].symbol == symbol)
                return &tree->nodes[node].edges[i].child;
    return find_slot(tree, node, symbol);
}

/* Cuts the edge from `parent` to *child after `length` integers. The new node gets the
 * new leaf `leaf` with `symbol` as its other child. */
static uint32_t split_edge(struct tree *tree, uint32_t *child, uint32_t parent,
                           uint32_t length, struct edge leaf)
{
    uint32_t middle = tree->node_count++;
    uint32_t head = head_of(tree, *child);
    uint32_t depth = tree->nodes[parent].depth + length;
    struct edge lower = {symbol_at(tree, head + depth), *child};
    tree->nodes[middle] = (struct node){
        head, depth, ROOT, {lower, leaf}
    };
    *child = middle;
    return middle;
}

/* The node made last gets its link: the place where the next shorter suffix ended. */
static void link_to(struct tree *tree, struct builder *builder, uint32_t node)
{
    if (builder->unlinked != ROOT)
        tree->nodes[builder->unlinked].link = node;
    builder->unlinked = ROOT;
}

static void next_suffix(const struct tree *tree, struct builder *builder)
{
    builder->suffix++;
    if (builder->node != ROOT) {
        builder->node = tree->nodes[builder->node].link;
    } else if (builder->length > 0) {
        builder->length--;
        builder->edge = builder->suffix;
    }
}

/* Takes the active point over whole edges, then tries to read the integer at `position`
 * from there. False when it stands there already; else there is a new leaf. */
static bool extend(struct tree *tree, struct builder *builder, uint32_t position)
{
    uint32_t symbol = symbol_at(tree, position);
    uint32_t leaf = LEAF | builder->suffix;
    uint32_t *child;
    for (;;) {
        if (builder->length == 0)
            builder->edge = position;
        child = find_child(tree, builder->node, symbol_at(tree, builder->edge));
        if (*child == NO_CHILD) {
            *child = leaf;
            link_to(tree, builder, builder->node);
            return true;
        }
        uint32_t length = depth_of(tree, *child) - tree->nodes[builder->node].depth;
        if (builder->length < length)
            break;
        builder->node = *child;
        builder->edge += length;
        builder->length -= length;
    }
    uint32_t depth = tree->nodes[builder->node].depth + builder->length;
    if (symbol_at(tree, head_of(tree, *child) + depth) == symbol) {
        builder->length++;
        link_to(tree, builder, builder->node);
        return false;
    }
    uint32_t middle = split_edge(tree, child, builder->node, builder->length,
                                 (struct edge){symbol, leaf});
    link_to(tree, builder, middle);
    builder->unlinked = middle;
    return true;
}

static void build(struct tree *tree)
{
    struct builder builder = {0};
    for (uint32_t position = 0; position <= tree->count; position++) {
        builder.unlinked = ROOT;
        while (builder.suffix <= position && extend(tree, &builder, position))
            next_suffix(tree, &builder);
    }
}

/* --- from edges to lists of children --- */

struct family {
    uint32_t parent;
    uint32_t first_child, next_sibling; /* children, or NO_CHILD */
};

struct families {
    struct family *inner;
    uint32_t *leaves; /* parent of each leaf; once it is in a list, its next sibling */
};

static void set_parent(struct families *families, uint32_t child, uint32_t parent)
{
    if (child & LEAF)
        families->leaves[child & ~LEAF] = parent;
    else if (child != NO_CHILD)
        families->inner[child].parent = parent;
}

static void find_parents(const struct tree *tree, struct families *families)
{
    for (uint32_t node = ROOT + 1; node < tree->node_count; node++)
        for (uint32_t i = 0; i < OWN_EDGES; i++)
            set_parent(families, tree->nodes[node].edges[i].child, node);
    for (uint32_t i = 0; i < tree->slot_count; i++)
        set_parent(families, tree->slots[i].child, tree->slots[i].node);
}

/* Lists are built from their ends. */
static void list_children(const struct tree *tree, struct families *families)
{
    struct family *inner = families->inner;
    for (uint32_t leaf = tree->count + 1; leaf-- > 0;) {
        uint32_t parent = families->leaves[leaf];
        families->leaves[leaf] = inner[parent].first_child;
        inner[parent].first_child = LEAF | leaf;
    }
    for (uint32_t node = tree->node_count; node-- > ROOT + 1;) {
        uint32_t parent = inner[node].parent;
        inner[node].next_sibling = inner[parent].first_child;
        inner[parent].first_child = node;
    }
}

/* --- the walk --- */

struct walk {
    uint32_t *positions;
    uint32_t position_count;
    struct repeat *items;
    uint32_t item_count;
    uint32_t open; /* innermost repeat that is not complete, or NO_INDEX */
};

/* Until a repeat is complete, its `count` is the index of the open one around it: a
 * stack that needs no memory. */
static void open_repeat(struct walk *walk, uint32_t length)
{
    walk->items[walk->item_count] =
        (struct repeat){length, walk->position_count, walk->open};
    walk->open = walk->item_count++;
}

static void close_repeat(struct walk *walk)
{
    struct repeat *repeat = &walk->items[walk->open];
    walk->open = repeat->count;
    repeat->count = walk->position_count - repeat->first;
}

/* The leaf of the end mark alone is no suffix of the caller's string. */
static void add_leaf(const struct tree *tree, struct walk *walk, uint32_t leaf)
{
    if (leaf < tree->count)
        walk->positions[walk->position_count++] = leaf;
}

static void walk_tree(const struct tree *tree, const struct families *families,
                      uint32_t minimum, struct walk *walk)
{
    const struct family *inner = families->inner;
    uint32_t node = ROOT;
    uint32_t child = inner[ROOT].first_child;
    for (;;) {
        if (child & LEAF) {
            add_leaf(tree, walk, child & ~LEAF);
            child = families->leaves[child & ~LEAF];
        } else if (child != NO_CHILD) {
            if (tree->nodes[child].depth >= minimum)
                open_repeat(walk, tree->nodes[child].depth);
            node = child;
            child = inner[node].first_child;
        } else if (node != ROOT) {
            if (tree->nodes[node].depth >= minimum)
                close_repeat(walk);
            child = inner[node].next_sibling;
            node = inner[node].parent;
        } else {
            return;
        }
    }
}

static uint32_t count_repeats(const struct tree *tree, uint32_t minimum)
{
    uint32_t count = 0;
    for (uint32_t node = ROOT + 1; node < tree->node_count; node++)
        count += tree->nodes[node].depth >= minimum;
    return count;
}

/* Memory: `edges` holds the hash table and goes before the result is made. */
struct repeats suffixtree_repeats_measured(struct arena *arena, const uint32_t *values,
                                           uint32_t count, uint32_t minimum,
                                           uint64_t *peak)
{
    assert(count < LEAF - 1 && "node numbers have 31 bits");
    struct arena *edges = arena_new(), *stage = arena_new();
    struct tree tree = {.values = values, .count = count, .node_count = 1};
    tree.slot_count = count + count / 2 + 2;
    tree.slots = arena_new_array(edges, struct slot, tree.slot_count);
    tree.nodes = arena_new_array(stage, struct node, (size_t)count + 1);
    build(&tree);

    struct families families = {
        arena_new_array(stage, struct family, tree.node_count),
        arena_new_array(stage, uint32_t, (size_t)count + 1),
    };
    find_parents(&tree, &families);
    *peak = arena_used(edges) + arena_used(stage);
    arena_free(edges);
    list_children(&tree, &families);

    uint64_t before = arena_used(arena);
    struct walk walk = {.open = NO_INDEX};
    walk.positions = arena_new_array(arena, uint32_t, count);
    walk.items = arena_new_array(arena, struct repeat,
                                 count_repeats(&tree, minimum ? minimum : 1));
    walk_tree(&tree, &families, minimum ? minimum : 1, &walk);
    uint64_t late = arena_used(stage) + arena_used(arena) - before;
    *peak = late > *peak ? late : *peak;
    arena_free(stage);
    return (struct repeats){walk.positions, walk.position_count, walk.items,
                            walk.item_count};
}

struct repeats suffixtree_repeats(struct arena *arena, const uint32_t *values,
                                  uint32_t count, uint32_t minimum)
{
    uint64_t peak;
    return suffixtree_repeats_measured(arena, values, count, minimum, &peak);
}
