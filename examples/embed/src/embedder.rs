//! Sentences to vectors: tokens, a run of the model, the mean over tokens if the model leaves it to us.

use crate::AnyError;
use monopour::program::DYNAMIC;
use monopour::runtime::{HostTensor, Session};
use tokenizers::{Encoding, PaddingParams, PaddingStrategy, Tokenizer, TruncationParams};

/// The model's result of one vector per sentence.
const POOLED: &str = "sentence_embedding";
/// The model's result of one vector per token.
const PER_TOKEN: &str = "last_hidden_state";

/// A model on a device, with its tokenizer.
pub struct Embedder {
    session: Session,
    tokenizer: Tokenizer,
    /// Sentences of a run: the most of them, or the exact number that a model of static sizes takes.
    batch: usize,
    is_static: bool,
    result: &'static str,
}

impl Embedder {
    /// The model of `session`; `batch` is the most sentences of a run, if its size is dynamic.
    ///
    /// # Errors
    /// A tokenizer that cannot cut to the length of the model.
    pub fn new(session: Session, mut tokenizer: Tokenizer, batch: usize) -> Result<Self, AnyError> {
        let signature = session.signature();
        // Without such an input, the first run says what the model takes.
        let (sentences, tokens) = match signature.input("input_ids").map(|input| &input.shape[..]) {
            Some([sentences, tokens]) => (*sentences, *tokens),
            _ => (DYNAMIC, DYNAMIC),
        };
        // Any length is one program: pad to the longest sentence of the run. Static sizes: pad and cut to them.
        let padding = tokenizer.get_padding().cloned().unwrap_or_default();
        let strategy = match tokens {
            DYNAMIC => PaddingStrategy::BatchLongest,
            fixed => PaddingStrategy::Fixed(fixed as usize),
        };
        tokenizer.with_padding(Some(PaddingParams { strategy, ..padding }));
        if tokens != DYNAMIC {
            let truncation = tokenizer.get_truncation().cloned().unwrap_or_default();
            tokenizer.with_truncation(Some(TruncationParams { max_length: tokens as usize, ..truncation }))?;
        }
        let is_static = sentences != DYNAMIC;
        let batch = if is_static { sentences as usize } else { batch };
        let result = if signature.result(PER_TOKEN).is_some() && signature.result(POOLED).is_none() {
            PER_TOKEN
        } else {
            POOLED
        };
        Ok(Self { session, tokenizer, batch: batch.max(1), is_static, result })
    }

    /// A vector of length 1 for each sentence.
    ///
    /// # Errors
    /// Those of the tokenizer and of the run.
    pub fn embed(&mut self, sentences: &[String]) -> Result<Vec<Vec<f64>>, AnyError> {
        let mut embeddings = Vec::with_capacity(sentences.len());
        for chunk in sentences.chunks(self.batch) {
            let mut texts: Vec<&str> = chunk.iter().map(String::as_str).collect();
            if self.is_static {
                texts.resize(self.batch, "");
            }
            let tokens = self.tokenizer.encode_batch(texts, true)?;
            embeddings.extend(self.run(&tokens)?.into_iter().take(chunk.len()));
        }
        Ok(embeddings)
    }

    fn run(&mut self, tokens: &[Encoding]) -> Result<Vec<Vec<f64>>, AnyError> {
        let mut inputs = vec![
            ("input_ids", matrix(tokens, Encoding::get_ids)?),
            ("attention_mask", matrix(tokens, Encoding::get_attention_mask)?),
            ("token_type_ids", matrix(tokens, Encoding::get_type_ids)?),
        ];
        // Some models have no token types.
        inputs.retain(|(name, _)| self.session.signature().input(name).is_some());
        let results = self.session.run_named(inputs, &[self.result]).map_err(monopour::Error::from)?;
        let shape = results[0].shape();
        let expected = [tokens.len() as u64, tokens.first().map_or(0, Encoding::len) as u64];
        let expected = if self.result == POOLED { &expected[..1] } else { &expected };
        let elements = shape.iter().skip(1).product::<u64>() as usize;
        if !shape.starts_with(expected) || elements == 0 {
            let result = self.result;
            return Err(
                format!("error: result `{result}` has sizes {shape:?}, expected {expected:?} and some more").into()
            );
        }
        let values = results[0].to_f64();
        let vectors = values.chunks(elements);
        Ok(vectors.zip(tokens).map(|(vector, tokens)| unit(self.pool(vector, tokens.get_attention_mask()))).collect())
    }

    /// One vector of a sentence: the mean over its tokens, where the model gives one for each.
    fn pool(&self, values: &[f64], mask: &[u32]) -> Vec<f64> {
        if self.result == POOLED {
            return values.to_vec();
        }
        let width = values.len() / mask.len();
        let mut sum = vec![0.0; width];
        for (token, _) in values.chunks(width).zip(mask).filter(|(_, kept)| **kept == 1) {
            sum.iter_mut().zip(token).for_each(|(sum, value)| *sum += value);
        }
        // Its length is 1 in the end: the sum will do for the mean.
        sum
    }
}

/// Numbers of the tokens: a row per sentence.
fn matrix(tokens: &[Encoding], numbers: fn(&Encoding) -> &[u32]) -> Result<HostTensor, monopour::Error> {
    let values: Vec<i64> = tokens.iter().flat_map(numbers).map(|number| i64::from(*number)).collect();
    let columns = tokens.first().map_or(0, Encoding::len);
    Ok(HostTensor::from_i64(vec![tokens.len() as u64, columns as u64], &values)?)
}

/// The vector divided by its length.
fn unit(mut vector: Vec<f64>) -> Vec<f64> {
    let length = similarity(&vector, &vector).sqrt().max(f64::MIN_POSITIVE);
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

/// The cosine of two vectors of length 1.
pub fn similarity(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
