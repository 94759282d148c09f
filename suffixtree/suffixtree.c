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
 * What makes it small and quick:
 *   - A node stores the length of its string (`depth`) and one place where that string
 *     stands (`head`). The label of the edge parent -> child then is
 *     text[head(child) + depth(parent) .. head(child) + depth(child)), so an edge needs
 *     no record of its own. The leaf of suffix j has head j and reaches to the next
 *     separator: all that is kept of it is its parent.
 *   - Integers that occur once are separators, too: no repeat holds one. Nobody ever
 *     asks for an edge that begins with a separator. So at a separator the suffixes
 *     that are still open get their leaves, and the next one begins at the root.
 *   - The alphabet is as large as the text, so arrays of children are out of the
 *     question but for the root, and lists of them are quadratic. Most inner nodes have
 *     two children, though: two edges are in the node itself, where reading it has
 *     brought them into the cache. All others are in one hash table, (node, first
 *     symbol) -> child, which grows.
 * There are at most as many inner nodes as leaves, and all but the root keep two of
 * their children themselves: where there are many nodes, there are few slots. Both grow
 * by doubling, each in an arena of its own, so that what they grow out of is given
 * back. Per integer that is 8 bytes of text and leaves, and at most 48 of nodes while
 * they grow, or 32 of them, 6 of slots and 16 of the result: 62 at the worst.
 *
 * Order: children are listed by number: inner nodes in the order in which their repeat
 * was first seen to repeat, then leaves by position. So the layout of the hash table
 * does not show.
 *
 * Why not a suffix array with an LCP array? Smaller still and as fast, but the
 * intervals have to be recovered with a stack, and the best construction (SA-IS) is
 * longer and harder to read than all of this. Why not a generalised tree over many
 * strings? This is one: separators part them.
 *
 * Reference: E. Ukkonen, "On-line construction of suffix trees", Algorithmica 14
 * (1995). The layout follows S. Kurtz, "Reducing the space requirement of suffix trees"
 * (1999).
 */
#include "mo/suffixtree.h"

#include "mo/array.h"

#include <assert.h>
#include <string.h>

/* A child: an inner node by its index, or a leaf by its suffix's start with the top bit
 * set. 0 is "none": the root is nobody's child. */
enum { ROOT = 0 };
#define NO_CHILD 0u
#define LEAF     0x80000000u

#define SEPARATOR UINT32_MAX

struct edge {
    uint32_t symbol; /* the first of its label; SEPARATOR: no such edge */
    uint32_t child;
};

enum { OWN_EDGES = 2 };

/* Of an inner node, while the tree is built. */
struct growth {
    uint32_t head;                /* one start of its string in the text */
    uint32_t link;                /* the node of its string without the first integer */
    struct edge edges[OWN_EDGES]; /* the root's are empty */
};

/* … and when it is walked through: the inner nodes below it, and its own leaves. */
struct family {
    uint32_t first_child, next_sibling; /* nodes, or ROOT */
    uint32_t leaves;                    /* how many; then where the next one goes */
};

struct node {
    uint32_t depth; /* integers in its string */
    uint32_t parent;
    union {
        struct growth growth;
        struct family family;
    } u;
};

struct slot {
    uint32_t node;
    uint32_t symbol;
    uint32_t child; /* NO_CHILD: free */
};

struct tree {
    struct arena *stage;
    const uint32_t *text; /* ends in a separator */
    uint32_t count;
    uint32_t *roots;  /* children of the root, by symbol */
    uint32_t *leaves; /* parent of each leaf; ROOT: there is none */
    struct arena *slot_arena;
    struct slot *slots;
    uint32_t slot_count, used_slots;
    struct arena *node_arena;
    struct node *nodes;
    uint32_t node_count, node_room;
    uint64_t peak; /* bytes */
};

/* The active point: the longest suffix of what has been read that occurs earlier, as
 * `length` integers of the text from `edge` on, below `node`. */
struct builder {
    uint32_t node, edge, length;
    uint32_t child;    /* at the other end of that edge; NO_CHILD: look for it */
    uint32_t suffix;   /* start of the first suffix that has no leaf yet */
    uint32_t unlinked; /* node made last, which waits for its link, or ROOT */
};

/* --- memory --- */

static void note_peak(struct tree *tree, uint64_t more)
{
    uint64_t now = arena_used(tree->stage) + arena_used(tree->node_arena) +
                   arena_used(tree->slot_arena) + more;
    tree->peak = now > tree->peak ? now : tree->peak;
}

/* In an arena of its own, so that what it replaces can be given back. */
static void grow_nodes(struct tree *tree)
{
    struct arena *arena = arena_new();
    uint32_t room = tree->node_room * 2;
    struct node *nodes = array_room(arena, room, sizeof *nodes);
    memcpy(nodes, tree->nodes, tree->node_count * sizeof *nodes);
    note_peak(tree, arena_used(arena));
    arena_free(tree->node_arena);
    tree->node_arena = arena;
    tree->nodes = nodes;
    tree->node_room = room;
}

/* --- edges --- */

static uint32_t head_of(const struct tree *tree, uint32_t child)
{
    return child & LEAF ? child & ~LEAF : tree->nodes[child].u.growth.head;
}

static uint32_t first_slot(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    uint64_t mixed = ((uint64_t)node << 32 | symbol) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(((mixed >> 32) * tree->slot_count) >> 32);
}

/* The edge's slot, or the free one where it belongs. */
static struct slot *find_slot(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    uint32_t at = first_slot(tree, node, symbol);
    for (;;) {
        struct slot *slot = &tree->slots[at];
        if (slot->child == NO_CHILD || (slot->node == node && slot->symbol == symbol))
            return slot;
        if (++at == tree->slot_count)
            at = 0;
    }
}

/* Where the child is kept to which the edge from `node` with `symbol` leads; it says
 * NO_CHILD, and is not to be written to, when there is none. */
static uint32_t *find_child(const struct tree *tree, uint32_t node, uint32_t symbol)
{
    if (node == ROOT)
        return &tree->roots[symbol];
    struct edge *edges = tree->nodes[node].u.growth.edges;
    for (uint32_t i = 0; i < OWN_EDGES; i++)
        if (edges[i].symbol == symbol)
            return &edges[i].child;
    return &find_slot(tree, node, symbol)->child;
}

static void grow_slots(struct tree *tree)
{
    struct arena *old_arena = tree->slot_arena;
    const struct slot *old = tree->slots;
    uint32_t old_count = tree->slot_count;
    tree->slot_arena = arena_new();
    tree->slot_count = old_count * 2;
    tree->slots = arena_new_array(tree->slot_arena, struct slot, tree->slot_count);
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i].child != NO_CHILD)
            *find_slot(tree, old[i].node, old[i].symbol) = old[i];
    note_peak(tree, arena_used(old_arena));
    arena_free(old_arena);
}

/* There is no such edge yet. */
static void add_edge(struct tree *tree, uint32_t node, struct edge edge)
{
    struct edge *edges = tree->nodes[node].u.growth.edges;
    if (node == ROOT) {
        tree->roots[edge.symbol] = edge.child;
        return;
    }
    for (uint32_t i = 0; i < OWN_EDGES; i++)
        if (edges[i].symbol == SEPARATOR) {
            edges[i] = edge;
            return;
        }
    *find_slot(tree, node, edge.symbol) = (struct slot){node, edge.symbol, edge.child};
    if (++tree->used_slots > tree->slot_count / 4 * 3)
        grow_slots(tree);
}

static void set_parent(struct tree *tree, uint32_t child, uint32_t parent)
{
    if (child & LEAF)
        tree->leaves[child & ~LEAF] = parent;
    else
        tree->nodes[child].parent = parent;
}

/* --- building --- */

/* Takes the active point over whole edges. The child on whose edge it ends, or NO_CHILD
 * when that is a node. */
static uint32_t descend(const struct tree *tree, struct builder *builder)
{
    while (builder->length > 0) {
        if (builder->child == NO_CHILD)
            builder->child =
                *find_child(tree, builder->node, tree->text[builder->edge]);
        if (builder->child & LEAF)
            break;
        const struct node *child = &tree->nodes[builder->child];
        uint32_t length = child->depth - tree->nodes[builder->node].depth;
        if (builder->length < length)
            break;
        builder->node = builder->child;
        builder->child = NO_CHILD;
        builder->edge += length;
        builder->length -= length;
    }
    return builder->child;
}

/* The node made last gets its link: the place where the next shorter suffix ended. */
static void link_to(struct tree *tree, struct builder *builder, uint32_t node)
{
    if (builder->unlinked != ROOT)
        tree->nodes[builder->unlinked].u.growth.link = node;
    builder->unlinked = ROOT;
}

/* Cuts the edge on which the active point is. The new node is the parent of the first
 * suffix without a leaf, which goes on with `symbol`. */
static void split_edge(struct tree *tree, struct builder *builder, uint32_t symbol)
{
    uint32_t child = builder->child, head = head_of(tree, child);
    uint32_t depth = tree->nodes[builder->node].depth + builder->length;
    uint32_t middle = tree->node_count;
    struct edge lower = {tree->text[head + depth], child};
    struct edge leaf = {symbol, LEAF | builder->suffix};
    if (middle == tree->node_room)
        grow_nodes(tree);
    tree->nodes[tree->node_count++] =
        (struct node){depth, builder->node, {{head, ROOT, {lower, leaf}}}};
    *find_child(tree, builder->node, tree->text[builder->edge]) = middle;
    set_parent(tree, child, middle);
    tree->leaves[builder->suffix] = middle;
    builder->child = NO_CHILD;
    link_to(tree, builder, middle);
    builder->unlinked = middle;
}

static void next_suffix(const struct tree *tree, struct builder *builder)
{
    builder->suffix++;
    builder->child = NO_CHILD;
    if (builder->node != ROOT) {
        builder->node = tree->nodes[builder->node].u.growth.link;
    } else if (builder->length > 0) {
        builder->length--;
        builder->edge = builder->suffix;
    }
}

/* Tries to read the integer at `position` from the active point. False when it stands
 * there already; else there is a new leaf. */
static bool extend(struct tree *tree, struct builder *builder, uint32_t position)
{
    uint32_t symbol = tree->text[position];
    if (descend(tree, builder) != NO_CHILD) {
        uint32_t depth = tree->nodes[builder->node].depth + builder->length;
        if (tree->text[head_of(tree, builder->child) + depth] == symbol) {
            builder->length++;
            link_to(tree, builder, builder->node);
            return false;
        }
        split_edge(tree, builder, symbol);
        return true;
    }
    link_to(tree, builder, builder->node);
    builder->child = *find_child(tree, builder->node, symbol);
    if (builder->child != NO_CHILD) {
        builder->edge = position;
        builder->length = 1;
        return false;
    }
    add_edge(tree, builder->node, (struct edge){symbol, LEAF | builder->suffix});
    tree->leaves[builder->suffix] = builder->node;
    return true;
}

/* All suffixes that are open end at the separator at `position`. */
static void end_suffixes(struct tree *tree, struct builder *builder, uint32_t position)
{
    while (builder->suffix < position) {
        if (descend(tree, builder) != NO_CHILD) {
            split_edge(tree, builder, SEPARATOR);
        } else {
            link_to(tree, builder, builder->node);
            tree->leaves[builder->suffix] = builder->node;
        }
        next_suffix(tree, builder);
    }
    *builder = (struct builder){.suffix = position + 1};
}

static void build(struct tree *tree)
{
    struct builder builder = {0};
    for (uint32_t position = 0; position <= tree->count; position++) {
        builder.unlinked = ROOT;
        if (tree->text[position] == SEPARATOR) {
            end_suffixes(tree, &builder, position);
            continue;
        }
        while (builder.suffix <= position && extend(tree, &builder, position))
            next_suffix(tree, &builder);
    }
}

/* The values, with one mark for all that no repeat holds. */
static const uint32_t *make_text(struct arena *stage, const uint32_t *values,
                                 uint32_t count, uint32_t alphabet)
{
    uint8_t *seen = arena_alloc(stage, alphabet); /* 0, 1, 2: more often */
    uint32_t *text = array_room(stage, count + 1, sizeof *text);
    for (uint32_t i = 0; i < count; i++)
        if (values[i] < alphabet && seen[values[i]] < 2)
            seen[values[i]]++;
    for (uint32_t i = 0; i < count; i++)
        text[i] = values[i] < alphabet && seen[values[i]] > 1 ? values[i] : SEPARATOR;
    text[count] = SEPARATOR;
    return text;
}

/* Room for nodes and slots as code needs it, mostly. */
enum { NODE_SHARE = 4, SLOT_SHARE = 2, LEAST_ROOM = 64 };

static struct tree tree_of(const uint32_t *values, uint32_t count, uint32_t alphabet)
{
    struct tree tree = {.count = count, .node_count = 1};
    tree.stage = arena_new();
    tree.text = make_text(tree.stage, values, count, alphabet);
    tree.roots = arena_new_array(tree.stage, uint32_t, alphabet);
    tree.leaves = arena_new_array(tree.stage, uint32_t, (size_t)count + 1);
    tree.node_arena = arena_new();
    tree.node_room = count / NODE_SHARE + LEAST_ROOM;
    tree.nodes = array_room(tree.node_arena, tree.node_room, sizeof *tree.nodes);
    tree.nodes[ROOT] = (struct node){0};
    tree.slot_arena = arena_new();
    tree.slot_count = count / SLOT_SHARE + LEAST_ROOM;
    tree.slots = arena_new_array(tree.slot_arena, struct slot, tree.slot_count);
    note_peak(&tree, 0);
    build(&tree);
    return tree;
}

static void tree_free(const struct tree *tree)
{
    arena_free(tree->stage);
    arena_free(tree->node_arena);
    arena_free(tree->slot_arena);
}

/* --- the walk --- */

/* Lists are built from their ends. */
static void make_families(const struct tree *tree)
{
    struct node *nodes = tree->nodes;
    for (uint32_t node = ROOT; node < tree->node_count; node++)
        nodes[node].u.family = (struct family){0};
    for (uint32_t node = tree->node_count; node-- > ROOT + 1;) {
        struct family *parent = &nodes[nodes[node].parent].u.family;
        nodes[node].u.family.next_sibling = parent->first_child;
        parent->first_child = node;
    }
    for (uint32_t leaf = 0; leaf < tree->count; leaf++)
        nodes[tree->leaves[leaf]].u.family.leaves++;
}

struct walk {
    struct repeat *items;
    uint32_t item_count;
    uint32_t position_count;
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

/* Behind the last of its children a node's own leaves have their places. */
static void place_leaves(struct walk *walk, struct family *family)
{
    uint32_t count = family->leaves;
    family->leaves = walk->position_count;
    walk->position_count += count;
}

static void walk_tree(const struct tree *tree, uint32_t minimum, struct walk *walk)
{
    struct node *nodes = tree->nodes;
    uint32_t node = ROOT, child = nodes[ROOT].u.family.first_child;
    for (;;) {
        if (child != ROOT) {
            if (nodes[child].depth >= minimum)
                open_repeat(walk, nodes[child].depth);
            node = child;
            child = nodes[node].u.family.first_child;
        } else if (node != ROOT) {
            place_leaves(walk, &nodes[node].u.family);
            if (nodes[node].depth >= minimum)
                close_repeat(walk);
            child = nodes[node].u.family.next_sibling;
            node = nodes[node].parent;
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

static struct repeats repeats_of(struct arena *arena, const struct tree *tree,
                                 uint32_t minimum)
{
    struct walk walk = {.open = NO_INDEX};
    make_families(tree);
    walk.items = array_room(arena, count_repeats(tree, minimum), sizeof *walk.items);
    walk_tree(tree, minimum, &walk);
    uint32_t *positions = array_room(arena, walk.position_count, sizeof *positions);
    for (uint32_t leaf = 0; leaf < tree->count; leaf++) {
        uint32_t parent = tree->leaves[leaf];
        if (parent != ROOT)
            positions[tree->nodes[parent].u.family.leaves++] = leaf;
    }
    return (struct repeats){positions, walk.position_count, walk.items,
                            walk.item_count};
}

struct repeats suffixtree_repeats_measured(struct arena *arena, const uint32_t *values,
                                           uint32_t count, uint32_t alphabet,
                                           uint32_t minimum, uint64_t *peak)
{
    assert(count < LEAF - 1 && "node numbers have 31 bits");
    struct tree tree = tree_of(values, count, alphabet);
    uint64_t before = arena_used(arena);
    struct repeats repeats = repeats_of(arena, &tree, minimum ? minimum : 1);
    note_peak(&tree, arena_used(arena) - before);
    *peak = tree.peak;
    tree_free(&tree);
    return repeats;
}

struct repeats suffixtree_repeats(struct arena *arena, const uint32_t *values,
                                  uint32_t count, uint32_t alphabet, uint32_t minimum)
{
    uint64_t peak;
    return suffixtree_repeats_measured(arena, values, count, alphabet, minimum, &peak);
}
