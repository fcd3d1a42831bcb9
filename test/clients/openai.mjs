// Runs a tool loop with OpenAI's own SDK: node openai.mjs BASE_URL stream|whole PROMPT
// Prints the final text, or the code of the error that ended the loop, and exits with 1 then.
import OpenAI from 'openai';

const [baseURL, how, prompt] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'sk-test' });

// seq is the only command the scripted model asks for; nothing is executed.
function run({ command }) {
  const [, from, to] = command.match(/^seq (\d+) (\d+)$/).map(Number);
  const lines = [];
  for (let i = from; i <= to; i++) lines.push(i);
  return lines.join('\n') + '\n';
}

const request = {
  model: 'gpt-4o-mini',
  stream: how === 'stream',
  messages: [
    { role: 'system', content: 'You run commands until you know the answer.' },
    { role: 'user', content: prompt },
  ],
  tools: [
    {
      type: 'function',
      function: {
        name: 'bash',
        description: 'Run a command and return what it prints.',
        parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
        parse: JSON.parse,
        function: run,
      },
    },
  ],
};

try {
  const runner = client.chat.completions.runTools(request, { maxChatCompletions: 100 });
  console.log(await runner.finalContent());
} catch (error) {
  console.log(error.code ?? error.message);
  process.exitCode = 1;
}
