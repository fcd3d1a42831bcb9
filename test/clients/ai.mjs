// A tool loop with Vercel's AI SDK. Arguments are those of loop.mjs, and one more API: "compatible", which is the chat API as
// its provider for other servers speaks it.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import * as loop from './loop.mjs';

function model(api, baseURL) {
  const apiKey = 'sk-test';
  switch (api) {
    case 'responses':
      return createOpenAI({ baseURL, apiKey })(loop.models.responses); // its default
    case 'chat':
      return createOpenAI({ baseURL, apiKey }).chat(loop.models.chat);
    case 'compatible':
      return createOpenAICompatible({ name: 'compatible', baseURL, apiKey })(loop.models.chat);
  }
}

await loop.main(async ({ baseURL, api, stream, prompt }) => {
  const { name, description, parameters, run } = loop.tool;
  const request = {
    model: model(api, baseURL),
    system: loop.instructions,
    prompt,
    tools: { [name]: tool({ description, inputSchema: jsonSchema(parameters), execute: run }) },
    stopWhen: stepCountIs(loop.maxTurns),
    // Without this the SDK refers to what the server keeps, and nobody but the server can shorten the history.
    providerOptions: { openai: { store: false } },
  };
  if (!stream) return (await generateText(request)).text;
  let failure;
  const result = streamText({ ...request, onError: ({ error }) => (failure = error) });
  await result.consumeStream();
  if (failure) throw failure;
  return result.text;
});
