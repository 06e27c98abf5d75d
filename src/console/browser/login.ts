import { digestText } from '../../crypto/digest.ts';
import { button, paragraph, preformatted, submit } from './elements.ts';
import { canUsePasskeys, registerPasskey, signWithPasskey } from './passkey.ts';

/**
 * Offers to sign in with a passkey. The page computes the digest under a label that no license
 * uses, so the server cannot get a license signed this way.
 */
export function offerLogin(box: HTMLElement): void {
  const { word = '', to = '/', credentials = '' } = box.dataset;
  if (!canUsePasskeys()) return;
  const enter = async () => {
    const known = credentials.split(' ').filter((text) => text !== '');
    const challenge = digestText('effectmatch/console-login/v1', word);
    const { signature } = await signWithPasskey(known, challenge);
    const answer = await submit('/login/passkey', { word, assertion: signature });
    if (!answer.ok)
      throw new Error('this passkey is not registered here; reload the page to try another');
    location.href = to;
  };
  const register = async () => {
    const text = preformatted(await registerPasskey('EffectMatch sign-in'));
    box.append(
      paragraph(
        'Ask an administrator to add it to your entry under `people` in the configuration:',
      ),
      text,
    );
  };
  const label = 'Register a passkey for signing in';
  box.replaceChildren(
    ...(credentials === ''
      ? []
      : [button('Sign in with a passkey', enter, 'primary', 'Not signed in'), ' ']),
    button(label, register, '', 'Not registered'),
  );
}
