//! Random functions of several blocks without loops, for comparison with upstream.

use monopour_analysis::random::Random;

/// A function `@f` of random blocks. Each seed gives one program.
pub fn function(seed: u64) -> String {
    let mut random = Random::new(seed);
    let count = 2 + random.below(6) as usize;
    // The first block takes the function's arguments; the others up to two memrefs each.
    let args: Vec<usize> = (0..count).map(|block| if block == 0 { 0 } else { random.below(3) as usize }).collect();
    let returns = random.percent(50);
    let mut writer = Writer { random, text: String::new(), next: 0, reached: vec![false; count], remade: vec![] };
    let mut shared = vec!["%m".to_owned(), "%n".to_owned()];
    for block in 0..count {
        let mut visible = shared.clone();
        if block > 0 {
            let list: Vec<String> = (0..args[block]).map(|i| format!("%b{block}_{i}")).collect();
            let typed: Vec<String> = list.iter().map(|name| format!("{name}: memref<4xf32>")).collect();
            writer.text += &format!("^bb{block}({}):\n", typed.join(", "));
            visible.extend(list);
        }
        for _ in 0..writer.random.below(4) {
            writer.op(&mut visible);
        }
        if block == 0 {
            // Results that upstream recreates stay in their block: it forgets that they are live, and frees them.
            shared = visible.iter().filter(|name| !writer.remade.contains(name)).cloned().collect();
        }
        writer.terminator(block, &args, &visible, returns);
    }
    let result = if returns { " -> memref<4xf32>" } else { "" };
    format!("func.func @f(%m: memref<4xf32>, %n: memref<4xf32>, %c: i1, %d: i1){result} {{\n{}}}\n", writer.text)
}

struct Writer {
    random: Random,
    text: String,
    next: usize,
    /// Blocks that have a predecessor already.
    reached: Vec<bool>,
    /// Results of region operations and calls.
    remade: Vec<String>,
}

impl Writer {
    fn pick(&mut self, from: &[String]) -> String {
        from[self.random.below(from.len() as u32) as usize].clone()
    }

    fn condition(&mut self) -> &'static str {
        if self.random.percent(50) { "%c" } else { "%d" }
    }

    fn op(&mut self, visible: &mut Vec<String>) {
        let name = format!("%v{}", self.next);
        self.next += 1;
        let (a, b) = (self.pick(visible), self.pick(visible));
        let condition = self.condition();
        let line = match self.random.below(6) {
            0 | 1 => format!("{name} = memref.alloc() : memref<4xf32>\n"),
            // Upstream lists such a memref twice in a dealloc.
            2 if a == b => return,
            2 => format!("{name} = arith.select {condition}, {a}, {b} : memref<4xf32>\n"),
            3 => {
                self.text += &format!("memref.copy {a}, {b} : memref<4xf32> to memref<4xf32>\n");
                return;
            }
            4 => format!(
                "{name} = scf.if {condition} -> memref<4xf32> {{\n scf.yield {a} : memref<4xf32>\n}} else {{\n %i{0} = memref.alloc() : memref<4xf32>\n scf.yield {1} : memref<4xf32>\n}}\n",
                self.next,
                if self.random.percent(50) { b } else { format!("%i{}", self.next) }
            ),
            _ => format!("{name} = call @g({a}) : (memref<4xf32>) -> memref<4xf32>\n"),
        };
        if line.contains("scf.if") || line.contains("call") {
            self.remade.push(name.clone());
        }
        self.text += &line;
        visible.push(name);
    }

    fn terminator(&mut self, block: usize, args: &[usize], visible: &[String], returns: bool) {
        let last = block + 1 == args.len();
        // Each block has the next one as successor, unless that has a predecessor: upstream makes invalid code of unreachable blocks.
        if last || (self.reached[block + 1] && self.random.percent(20)) {
            let value = self.pick(visible);
            self.text += &if returns { format!("return {value} : memref<4xf32>\n") } else { "return\n".to_owned() };
            return;
        }
        let first = if self.reached[block + 1] { self.any_after(block, args) } else { block + 1 };
        let first = self.edge(first, args, visible);
        if self.random.percent(40) {
            self.text += &format!("cf.br {first}\n");
            return;
        }
        let second = self.any_after(block, args);
        let second = self.edge(second, args, visible);
        let condition = self.condition();
        self.text += &format!("cf.cond_br {condition}, {first}, {second}\n");
    }

    fn any_after(&mut self, block: usize, args: &[usize]) -> usize {
        block + 1 + self.random.below((args.len() - block - 1) as u32) as usize
    }

    fn edge(&mut self, target: usize, args: &[usize], visible: &[String]) -> String {
        self.reached[target] = true;
        if args[target] == 0 {
            return format!("^bb{target}");
        }
        let values: Vec<String> = (0..args[target]).map(|_| self.pick(visible)).collect();
        let types = vec!["memref<4xf32>"; values.len()].join(", ");
        format!("^bb{target}({} : {types})", values.join(", "))
    }
}
