-- lua5.4 workloads.lua NAME: one warm-up and five timed runs of a workload, CPU time.
-- lua5.4 workloads.lua latency FILE: microseconds from source text to value in this state.
-- The same algorithms and data as mcp/src/bench/workloads/*.ptc, as a Lua programmer writes them.
local ROWS = 200000
local work, data = {}, {}

local function random()
  local x = 42
  return function(below)
    x = x * 16807 % 2147483647
    return x % below
  end
end

function work.w1()
  local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
  end
  return fib(27)
end

function work.w2()
  local sum = 0
  for i = 0, 4999999 do sum = sum + i * i % 7 end
  return sum
end

function work.w3()
  local tags, rows = {}, {}
  for i = 0, 15 do tags[i] = "t" .. i end
  for i = 0, ROWS - 1 do
    rows[#rows + 1] = { id = i, price = i * 7919 % 1000, tag = tags[(i * 31 + i // 7) % 16] }
  end
  local kept = {}
  for _, row in ipairs(rows) do
    if row.price >= 250 then kept[#kept + 1] = row end
  end
  local amounts = {}
  for _, row in ipairs(kept) do amounts[#amounts + 1] = { tag = row.tag, amount = 1 + 2 * row.price } end
  local groups, names = {}, {}
  for _, row in ipairs(amounts) do
    local group = groups[row.tag]
    if not group then
      group = {}
      groups[row.tag] = group
      names[#names + 1] = row.tag
    end
    group[#group + 1] = row
  end
  table.sort(names)
  local lines = {}
  for _, name in ipairs(names) do
    local sum = 0
    for _, row in ipairs(groups[name]) do sum = sum + row.amount end
    lines[#lines + 1] = name .. "=" .. sum
  end
  return table.concat(lines, ",")
end

function data.w4()
  local below, words = random(), {}
  for i = 1, 500000 do
    local a = below(5000)
    local b = below(5000)
    words[i] = "w" .. a * b // 5000
  end
  return words
end

function work.w4(words)
  local counts, different, most = {}, 0, 0
  for _, word in ipairs(words) do counts[word] = (counts[word] or 0) + 1 end
  for _, count in pairs(counts) do
    different = different + 1
    if count > most then most = count end
  end
  return different * 1000000 + most
end

function work.w5()
  local parts = {}
  for i = 0, ROWS - 1 do parts[#parts + 1] = string.upper("item-" .. i .. ",name" .. i % 97) end
  local joined, total = table.concat(parts, "|"), 0
  for part in string.gmatch(joined, "[^|]+") do total = total + #string.match(part, ",([^,]+)") end
  return #joined + total
end

function data.w6()
  local below, records = random(), {}
  for i = 1, ROWS do
    local a = below(1000)
    local b = below(100000)
    records[i] = { id = i, a = a, b = b }
  end
  return records
end

function work.w6(records)
  local sorted, sum = table.move(records, 1, #records, 1, {}), 0
  table.sort(sorted, function(x, y)
    if x.a ~= y.a then return x.a < y.a end
    return x.b < y.b
  end)
  for i = 1, ROWS, 100 do sum = (sum * 31 + sorted[i].a * 100000 + sorted[i].b) % 1000003 end
  return sum
end

local function issues_text()
  local file = assert(io.open("issues.json"))
  local text = file:read("a")
  file:close()
  return text
end

data.w7p = issues_text
function work.w7p(text) return #require("cjson").decode(text) end

function data.w7w() return require("cjson").decode(issues_text()) end
function work.w7w(issues)
  local counts, rows, lines = {}, {}, {}
  for _, issue in ipairs(issues) do
    local login = issue.user.login
    for _, label in ipairs(issue.labels) do
      if label.name ~= "wontfix" then counts[login] = (counts[login] or 0) + 1 end
    end
  end
  for login, n in pairs(counts) do rows[#rows + 1] = { login = login, n = n } end
  table.sort(rows, function(x, y)
    if x.n ~= y.n then return x.n > y.n end
    return x.login < y.login
  end)
  for i = 1, 10 do lines[i] = rows[i].login .. ":" .. rows[i].n end
  return table.concat(lines, ",")
end

function work.w8()
  local function times(k) return function(x) return x * k end end
  local function modulo(k) return function(x) return x % k end end
  local function compose(f, g) return function(x) return f(g(x)) end end
  local function reduce(f, sum, n)
    for i = 0, n - 1 do sum = f(sum, i) end
    return sum
  end
  local step = compose(modulo(1000003), times(3))
  return reduce(function(sum, i) return step(sum + i) end, 0, 500000)
end

local name = arg[1]
if name == "latency" then
  local file = assert(io.open(arg[2]))
  local programs = { { "tiny_reuse", "return 1 + 2" }, { "p25_reuse", file:read("a") } }
  for _, program in ipairs(programs) do
    local best, result = math.huge, nil
    -- The clock counts microseconds, so twenty runs are timed together.
    for _ = 1, 200 do
      local start = os.clock()
      for _ = 1, 20 do result = load(program[2])() end
      best = math.min(best, (os.clock() - start) / 20 * 1e6)
    end
    print(string.format("LAT %s %s min=%.1f", program[1], tostring(result), best))
  end
else
  local input, result, times = data[name] and data[name](), nil, {}
  for run = 0, 5 do
    collectgarbage()
    local start = os.clock()
    result = work[name](input)
    if run > 0 then times[run] = string.format("%.4f", (os.clock() - start) * 1e3) end
  end
  print("RES " .. name .. " " .. tostring(result) .. " " .. table.concat(times, " "))
end
