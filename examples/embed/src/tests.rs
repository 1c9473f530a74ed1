//! A model of one table, and a tokenizer of three words: values, the cache, errors.

use crate::cache::{self, Origin};
use crate::embedder::{Embedder, similarity};
use crate::{nearest, report};
use monopour::CompileOptions;
use monopour::onnx::DataType;
use monopour::onnx::proto::{GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use monopour::options::Watch;
use monopour::runtime::{Device, DeviceChoice, Options, Session};
use monopour_testkit::onnx::{model_of, node, value, with_int};
use prost::Message;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokenizers::Tokenizer;

const TOKENIZER: &str = r#"{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}, "model":
    {"type": "WordLevel", "vocab": {"[PAD]": 0, "[UNK]": 1, "red": 2, "green": 3, "blue": 4}, "unk_token": "[UNK]"}}"#;
/// A vector per token; the one of the padding shows in a result that does not heed the mask.
const TABLE: [f32; 15] = [9.0, 9.0, 9.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0];

fn tensor(name: &str, dtype: DataType, shape: &[i64], data: &[u8]) -> TensorProto {
    let raw_data = data.to_vec().into();
    TensorProto {
        name: name.to_owned(),
        dims: shape.to_vec(),
        data_type: dtype.number(),
        raw_data,
        ..Default::default()
    }
}

fn table() -> TensorProto {
    tensor("table", DataType::F32, &[5, 3], &TABLE.map(f32::to_le_bytes).concat())
}

fn model(graph: GraphProto) -> ModelProto {
    model_of(graph, 17)
}

/// One vector per token, of any number of sentences and tokens.
fn per_token() -> ModelProto {
    model(GraphProto {
        input: vec![value("input_ids", DataType::I64, &["batch", "seq"])],
        initializer: vec![table()],
        node: vec![node("Gather", &["table", "input_ids"], &["last_hidden_state"])],
        output: vec![value("last_hidden_state", DataType::F32, &["batch", "seq", "3"])],
        ..Default::default()
    })
}

/// One vector per sentence, the sum over its tokens, for two sentences of four tokens.
fn pooled() -> ModelProto {
    let axis = |name: &str, at: i64| tensor(name, DataType::I64, &[1], &at.to_le_bytes());
    model(GraphProto {
        input: ["attention_mask", "input_ids"].map(|name| value(name, DataType::I64, &["2", "4"])).to_vec(),
        initializer: vec![table(), axis("last", 2), axis("tokens", 1)],
        node: vec![
            node("Gather", &["table", "input_ids"], &["rows"]),
            with_int(node("Cast", &["attention_mask"], &["mask"]), "to", i64::from(DataType::F32.number())),
            node("Unsqueeze", &["mask", "last"], &["column"]),
            node("Mul", &["rows", "column"], &["kept"]),
            with_int(node("ReduceSum", &["kept", "tokens"], &["sentence_embedding"]), "keepdims", 0),
        ],
        output: vec![value("sentence_embedding", DataType::F32, &["2", "3"])],
        ..Default::default()
    })
}

/// A folder of a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("monopour-embed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, model: &ModelProto) -> PathBuf {
        let path = self.0.join("model.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        path
    }

    fn artifacts(&self) -> Vec<PathBuf> {
        let paths = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "mpr")).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cpu() -> Device {
    Device::open(&DeviceChoice::Cpu).unwrap()
}

fn embedder(model: &Path, batch: usize) -> Embedder {
    let device = cpu();
    let (program, _) = cache::load(model, &CompileOptions::for_device(&device)).unwrap();
    let session = Session::load(&device, Arc::new(program), &Options { threads: 1, ..Default::default() }).unwrap();
    Embedder::new(session, TOKENIZER.parse::<Tokenizer>().unwrap(), batch).unwrap()
}

fn sentences() -> Vec<String> {
    ["red green", "blue", "red red blue"].map(str::to_owned).to_vec()
}

/// The vectors of [`sentences`]: (1, 1, 0), (0, 0, 2), (2, 0, 2), of length 1.
fn check(embeddings: &[Vec<f64>]) {
    let half = 0.5f64.sqrt();
    let expected = [[half, half, 0.0], [0.0, 0.0, 1.0], [half, 0.0, half]];
    assert_eq!(embeddings.len(), expected.len());
    for (found, expected) in embeddings.iter().zip(expected) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}, expected {expected:?}");
    }
}

#[test]
fn one_program_embeds_sentences_of_every_length() {
    let folder = Folder::new("lengths");
    let model = folder.write(&per_token());
    for batch in [1, 2, 32] {
        let embeddings = embedder(&model, batch).embed(&sentences()).unwrap();
        check(&embeddings);
    }
    assert_eq!(folder.artifacts().len(), 1);
}

#[test]
fn static_sizes_are_padded_and_cut() {
    let folder = Folder::new("static");
    let mut embedder = embedder(&folder.write(&pooled()), 32);
    check(&embedder.embed(&sentences()).unwrap());
    let long = embedder.embed(&["green green green green blue".to_owned()]).unwrap();
    assert!(similarity(&long[0], &[0.0, 1.0, 0.0]) > 0.999_999, "{long:?}");
}

#[test]
fn the_second_start_does_not_compile() {
    let folder = Folder::new("cache");
    let path = folder.write(&per_token());
    let phases = Arc::new(AtomicUsize::new(0));
    let counter = phases.clone();
    let watch = Watch::new(move |_, _| _ = counter.fetch_add(1, Ordering::Relaxed));
    let options = CompileOptions { watch: Some(watch), ..CompileOptions::for_device(&cpu()) };
    let load = || (cache::load(&path, &options).unwrap(), phases.swap(0, Ordering::Relaxed) > 0);
    let ((first, origin), compiled) = load();
    assert_eq!((origin, compiled), (Origin::Compiled, true));
    let ((second, origin), compiled) = load();
    assert_eq!((origin, compiled), (Origin::Cached, false));
    assert!(first == second);

    // Damaged: compiled again.
    let artifact = &folder.artifacts()[0];
    std::fs::write(artifact, b"MONOPOUR").unwrap();
    assert_eq!((load().1, load().1), (true, false));

    // Weights in another file are a part of the model.
    let entry = StringStringEntryProto { key: "location".to_owned(), value: "weights".to_owned() };
    let outside = TensorProto { data_location: 1, external_data: vec![entry], raw_data: vec![].into(), ..table() };
    let mut proto = per_token();
    proto.graph.as_mut().unwrap().initializer = vec![outside];
    folder.write(&proto);
    for weights in [TABLE, TABLE.map(|value| value + 1.0)] {
        std::fs::write(folder.0.join("weights"), weights.map(f32::to_le_bytes).concat()).unwrap();
        let ((program, _), compiled) = load();
        assert!(compiled);
        assert_eq!(program.constants[0].data.bytes(), weights.map(f32::to_le_bytes).concat());
        assert!(!load().1);
    }
    assert_eq!(folder.artifacts().len(), 3);
}

#[test]
fn errors_are_shown_with_their_codes() {
    let folder = Folder::new("errors");
    let options = CompileOptions::for_device(&cpu());
    let refused = |path: &Path| cache::load(path, &options).unwrap_err().to_string();
    let missing = refused(&folder.0.join("none.onnx"));
    assert!(missing.starts_with("error[I0031]: cannot read ") && missing.contains("\n  help: "), "{missing}");
    let text = folder.0.join("text.onnx");
    std::fs::write(&text, "version https://git-lfs").unwrap();
    assert!(refused(&text).starts_with("error[F0040]: "), "{}", refused(&text));

    let mut proto = per_token();
    let graph = proto.graph.as_mut().unwrap();
    graph.input[0].name = "tokens".to_owned();
    graph.node[0].input[1] = "tokens".to_owned();
    let error = embedder(&folder.write(&proto), 1).embed(&sentences()).unwrap_err().to_string();
    assert!(error.starts_with("error[R0007]: input `tokens: tensor<?x?xi64>` is missing\n  help: "), "{error}");
}

#[test]
fn a_sentence_without_tokens_is_an_error() {
    let folder = Folder::new("empty");
    let error = embedder(&folder.write(&per_token()), 1).embed(&[String::new()]).unwrap_err().to_string();
    assert!(error.starts_with("error: result `last_hidden_state` has sizes [1, 0, 3], expected [1, 0]"), "{error}");
}

#[test]
fn the_nearest_sentence_is_not_the_sentence_itself() {
    assert_eq!((nearest(&[1.0, 0.2, 0.7], 0), nearest(&[1.0], 0)), (Some(2), None));
    let vectors = [vec![1.0, 0.0], vec![0.6, 0.8], vec![0.0, 1.0]];
    let expected = "  1.0000  0.6000  0.0000\n  0.6000  1.0000  0.8000\n  0.0000  0.8000  1.0000\n\
                    red green\n  0.6000  blue\nblue\n  0.8000  red red blue\nred red blue\n  0.8000  blue\n";
    assert_eq!(report(&sentences(), &vectors), expected);
}
