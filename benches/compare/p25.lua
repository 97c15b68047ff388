-- the program of mcp/src/bench/workloads/p25.ptc
local orders = {
  { id = 1, user = "ann", total = 120, status = "paid" },
  { id = 2, user = "bob", total = 80, status = "open" },
  { id = 3, user = "ann", total = 45, status = "paid" },
  { id = 4, user = "cid", total = 300, status = "paid" },
  { id = 5, user = "bob", total = 10, status = "paid" },
  { id = 6, user = "dee", total = 75, status = "void" },
}
local function discount(n)
  if n > 100 then return n * 9 // 10 end
  return n
end
local sums, rows, lines = {}, {}, {}
for _, order in ipairs(orders) do
  if order.status == "paid" then
    sums[order.user] = (sums[order.user] or 0) + discount(order.total)
  end
end
for user, sum in pairs(sums) do rows[#rows + 1] = { user = user, sum = sum } end
table.sort(rows, function(x, y) return x.sum > y.sum end)
for i, row in ipairs(rows) do lines[i] = row.user .. "=" .. row.sum end
return table.concat(lines, ", ")
