# The manual page: the template, with the options of --help in the place of @OPTIONS@.
# usage: awk -f manual.awk help.txt mo-link.1.in
# The options of --help stand in groups ("What to do:"), each with two blanks in front, its
# text in column 26 and below.
function escaped(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}
function paragraph(text)
{
    text = escaped(text)
    return (text ~ /^[.']/ ? "\\&" : "") text
}
FNR == NR && /^[A-Z].*:$/ && !/^Examples:$/ {
    sub(/:$/, "")
    options = options ".SS \"" escaped($0) "\"\n"
    inside = 1
    next
}
FNR == NR && inside && /^  -/ {
    name = substr($0, 3)
    text = ""
    if (match(name, /   */)) {
        text = substr(name, RSTART + RLENGTH)
        name = substr(name, 1, RSTART - 1)
    }
    options = options ".TP\n.B " escaped(name) "\n" (text == "" ? "" : paragraph(text) "\n")
    next
}
FNR == NR && inside && /^                         / {
    sub(/^ +/, "")
    options = options paragraph($0) "\n"
    next
}
FNR == NR { inside = 0; next }
/^@OPTIONS@$/ { printf "%s", options; next }
{ print }
