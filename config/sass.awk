# sass.awk RULES LISTINGS...: judges kernels by the rules of cuda_kernels/sass_rules.txt. The listings are those of
# cuobjdump -res-usage and -sass.

# Rules: a pattern of names, then what is wanted of these kernels.
FILENAME == ARGV[1] {
    if ($0 !~ /^#/ && NF) {
        pattern[++rules] = $1
        sub(/\*$/, "", $1)
        prefix[rules] = $1
        most_registers[rules] = $2
        wanted_load[rules] = $3
        wanted_store[rules] = $4
        wanted_flight[rules] = $5
    }
    next
}

/^arch = / {
    arch = $3
    if (!(arch in seen)) {
        seen[arch] = 1
        archs[++arch_count] = arch
    }
    next
}

/^[ \t]*Function/ {
    kernel = $NF
    sub(/:$/, "", kernel)
    in_flight = 0
    flight_bytes = 0
    next
}

/ REG:/ {
    used = value("REG")
    registers[arch, kernel] = used
    if (value("STACK") || value("LOCAL")) {
        complain("has " value("STACK") + value("LOCAL") " bytes of local memory")
    }
    next
}

# An instruction: its address, a predicate perhaps, what it does, its operands. The encoding follows in a comment.
/^[ \t]*\/\*[0-9a-f]+\*\// {
    at = $2 ~ /^@/ ? 3 : 2
    op = $at
    if (op ~ /^LDG?\./) {
        if (op ~ /CONSTANT/) {
            complain("loads through the cache that other GPUs' writes do not reach: " op)
        }
        load(op, $(at + 1))
    } else if (op ~ /^STG?\.|^STG?$/) {
        widen(store_bytes, width(op))
        wait_for_operands(at + 1)
    } else if (op ~ /^(LDL|STL)/) {
        complain("spills: " op)
    } else if (in_flight && op ~ /^(EXIT|BRA|RET|BRX|JMP)/ && at == 2 && $3 !~ /U?P[0-9]/) {
        in_flight = 0 # what follows is reached from elsewhere
    } else if (in_flight) {
        wait_for_operands(at + 1)
    }
}

function value(key,    found)
{
    return match($0, " " key ":[0-9]+") ? substr($0, RSTART + length(key) + 2, RLENGTH - length(key) - 2) + 0 : 0
}

function complain(what)
{
    if (!((arch, kernel, what) in said)) {
        said[arch, kernel, what] = 1
        complaints[arch, kernel] = complaints[arch, kernel] "\n        " kernel " " what
    }
}

function width(op)
{
    return op ~ /\.256/ ? 32 : op ~ /\.128/ ? 16 : op ~ /\.64/ ? 8 : op ~ /\.[US]16/ ? 2 : op ~ /\.[US]8/ ? 1 : 4
}

function widen(widest, bytes)
{
    if (bytes > widest[arch, kernel]) {
        widest[arch, kernel] = bytes
    }
}

# Loads of the widest kind go out one after the other until an instruction needs what one of them brings.
function load(op, into,    bytes, r)
{
    bytes = width(op)
    widen(load_bytes, bytes)
    if (bytes != flight_bytes) {
        in_flight = 0
        flight_bytes = bytes
    } else if (in_flight) {
        wait_for_operands(at + 2) # an address
    }
    if (!in_flight) {
        split("", awaited)
    }
    sub(/^R/, "", into)
    for (r = 0; r < bytes; r += 4) {
        awaited[into + r / 4] = 1
    }
    ++in_flight
    if (in_flight > most_in_flight[arch, kernel, bytes]) {
        most_in_flight[arch, kernel, bytes] = in_flight
    }
}

function wait_for_operands(first,    i, rest)
{
    for (i = first; i <= NF && $i != ";"; ++i) {
        rest = $i
        while (match(rest, /R[0-9]+/)) {
            if ((substr(rest, RSTART + 1, RLENGTH - 1) + 0) in awaited && substr(rest, RSTART - 1, 1) != "U") {
                in_flight = 0
                return
            }
            rest = substr(rest, RSTART + RLENGTH)
        }
    }
}

function rule_of(name,    i)
{
    for (i = 1; i <= rules; ++i) {
        if (pattern[i] ~ /\*$/ ? index(name, prefix[i]) == 1 : name == prefix[i]) {
            return i
        }
    }
    return 0
}

function judge(key, i,    load_width, flight)
{
    load_width = load_bytes[key] + 0
    flight = most_in_flight[key, load_width] + 0
    if (registers[key] > most_registers[i]) {
        complain("has " registers[key] " registers, more than " most_registers[i])
    }
    if (load_width != wanted_load[i]) {
        complain("has " load_width "-byte loads at most, not of " wanted_load[i] " bytes")
    }
    if (store_bytes[key] + 0 != wanted_store[i]) {
        complain("has " store_bytes[key] + 0 "-byte stores at most, not of " wanted_store[i] " bytes")
    }
    if (flight < wanted_flight[i]) {
        complain("has " flight " loads in flight, fewer than " wanted_flight[i])
    }
    ++kernels[arch, i]
    if (registers[key] > used_most[arch, i]) {
        used_most[arch, i] = registers[key]
    }
    if (!((arch, i) in least_flight) || flight < least_flight[arch, i]) {
        least_flight[arch, i] = flight
    }
    wrong[arch, i] = wrong[arch, i] complaints[key]
}

END {
    for (key in registers) {
        split(key, part, SUBSEP)
        arch = part[1]
        kernel = part[2]
        i = rule_of(kernel)
        if (i) {
            judge(key, i)
        } else {
            ++failed
            print "FAILED  " arch " " kernel ": no rule"
        }
    }
    for (a = 1; a <= arch_count; ++a) {
        arch = archs[a]
        for (i = 1; i <= rules; ++i) {
            line = arch " " pattern[i] ": kernels " kernels[arch, i] + 0 ", registers at most " \
                used_most[arch, i] + 0 ", loads in flight at least " least_flight[arch, i] + 0
            if (kernels[arch, i] && wrong[arch, i] == "") {
                ++passed
                print "passed  " line
            } else {
                ++failed
                print "FAILED  " line wrong[arch, i]
            }
        }
    }
    print passed + 0 " passed, " failed + 0 " failed"
    exit failed > 0 || !passed
}
